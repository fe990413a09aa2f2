"""The run folder: its files, their formats, who writes and who reads them. No torch in here."""
