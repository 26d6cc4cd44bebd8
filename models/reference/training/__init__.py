"""Training of the demo models: recipes, a loop, and for each task its data, its loss and how it is measured."""
