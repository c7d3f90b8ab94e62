"""What every fold of a log needs: the protocol of a stage, the changelog of its state, sources, time and draws."""
