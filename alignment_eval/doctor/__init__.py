"""Why an AER looks wrong: misreadings of the files that would explain it."""
