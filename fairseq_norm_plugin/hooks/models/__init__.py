"""Models for fairseq; ``hooks/registration.py`` imports them."""
