"""The study of docs/results.md: suites with equal budgets, and the page made of their records."""
