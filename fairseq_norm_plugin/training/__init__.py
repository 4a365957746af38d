"""Training that guides attention maps by given links."""
