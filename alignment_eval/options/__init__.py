"""Options that several command lines share, also outside of this package: how they are declared, checked and read."""
