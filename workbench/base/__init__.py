"""What everything stands on: errors, text, files. Standard library only."""
