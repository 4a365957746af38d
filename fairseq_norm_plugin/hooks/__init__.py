"""What fairseq calls: tasks, models, a criterion, the generator, monitoring, and their options."""
