"""Speed of encoders, vision, speech and diffusion models."""
