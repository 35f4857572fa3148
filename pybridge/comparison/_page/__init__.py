"""Reports as pages: one HTML file each, light and dark, which refers to nothing outside it."""
