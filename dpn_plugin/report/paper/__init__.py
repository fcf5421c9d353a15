"""The tables of the paper with our figures in them."""
