module example.test/house

go 1.26.6
