"""The Lab: its regions in one frame."""
