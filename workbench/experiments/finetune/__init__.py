"""Fine-tuning: a few learning rates on a task, chosen on one part of its examples and tested once on another."""
