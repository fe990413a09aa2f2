"""All runs of a runs folder: what tables of the terminal, the notebook and the page say about them."""
