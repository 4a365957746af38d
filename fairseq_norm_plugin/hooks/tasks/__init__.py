"""The fairseq tasks; ``hooks/registration.py`` imports them."""
