"""Find knobs of the native engine that suit a recipe on a device: trials, and decisions from them."""
