"""The ground floor: errors, text, files. Standard library only."""
