# (rules to come)
