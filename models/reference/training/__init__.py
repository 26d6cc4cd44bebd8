"""Training of the demo models: recipes, a loop, and for each task its data, loss and figures."""
