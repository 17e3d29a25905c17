"""Fits numbers of a configuration to what was measured on a machine: `orrery calibrate`."""
