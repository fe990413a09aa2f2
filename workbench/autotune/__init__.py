"""Which knobs of the native engine suit a recipe on a device: trials, and what follows from them."""
