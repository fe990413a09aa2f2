"""What a run says while it trains: streams, columns, quantities, baselines."""
