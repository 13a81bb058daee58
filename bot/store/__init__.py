"""What the bot remembers: conversations, who asked what, settings, pending work, feedback and purchase studies."""
