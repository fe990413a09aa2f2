"""Training of a model, a loss and data that are the user's objects, under the session and loop of recipes."""
