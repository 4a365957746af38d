"""From the text that a user gives to the tokens and ids that a model reads."""
