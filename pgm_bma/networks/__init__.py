"""Any discrete pgmpy network: reading and building it, junction tree, EM with missing cells, inference, simulation."""
