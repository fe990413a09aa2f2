"""A trained model as a folder that transformers loads, with a card that says what it is."""
