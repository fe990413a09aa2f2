"""Training of a model, a loss and data that are objects of the user, under the session and loop of recipes."""
