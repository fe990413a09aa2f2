"""What races and sweeps share: a folder, a driver that may be killed, runs that are launched once, equal budgets."""
