grep -q 'The shop' pages/index.html
