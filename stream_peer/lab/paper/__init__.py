"""The paper's claims, re-run by simulation through the product's own formulas, and a page that shows what came out."""
