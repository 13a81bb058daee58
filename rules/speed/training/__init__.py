"""Speed of training: tokens a second, step time and the time of a whole run."""
