"""Optimizers and what three gradients make of a parameter, computed with PyTorch 2.13 in float64."""

START = [1.0, -2.0, 0.5]
GRADIENTS = [[0.1, -0.2, 3.0], [0.3, 0.0, -1.0], [0.0, 0.0, 0.5]]

# optimizer, options, the parameter after the three gradients
STEPS = [
    ("SGD", {"lr": 0.1}, [0.96, -1.98, 0.25]),
    ("SGD", {"lr": 0.1, "momentum": 0.9}, [0.9159001, -1.9458001, -0.173]),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1}, [0.9032795, -1.863409, -0.2582501]),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}, [0.8073099, -1.7750537, -0.3681748]),
    ("SGD", {"lr": 0.1, "weight_decay": 0.5, "maximize": True}, [0.8949, -1.7328, 0.6544375]),
    ("Adam", {"lr": 0.1}, [0.7372772, -1.7811984, 0.3194356]),
    ("Adam", {"lr": 0.1, "weight_decay": 0.5, "betas": (0.5, 0.9), "eps": 1e-3}, [0.7091427, -1.709794, 0.3428509]),
    ("Adam", {"lr": 0.1, "amsgrad": True, "betas": (0.5, 0.6)}, [0.7595572, -1.8378363, 0.3659454]),
    ("AdamW", {"lr": 0.1}, [0.7345718, -1.7754714, 0.318177]),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.5, "eps": 1e-3, "maximize": True}, [1.1040908, -1.9191101, 0.5974318]),
    ("AdamW", {"lr": 0.1, "amsgrad": True, "betas": (0.5, 0.6), "weight_decay": 0.3}, [0.680998, -1.6703573, 0.3286136]),
    ("Adagrad", {"lr": 0.1}, [0.8051317, -1.9, 0.4160054]),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.5, "weight_decay": 0.1, "initial_accumulator_value": 0.1, "maximize": True}, [1.0222971, -1.9411235, 0.5839529]),
    ("Adadelta", {}, [0.9925766, -1.9968381, 0.4975278]),
    ("Adadelta", {"lr": 0.5, "rho": 0.5, "weight_decay": 0.9, "eps": 0.001}, [0.9251403, -1.9256608, 0.4716078]),
    ("RMSprop", {"lr": 0.1}, [-0.9491567, -1.0000005, -0.3399741]),
    ("RMSprop", {"lr": 0.1, "alpha": 0.5, "momentum": 0.9, "centered": True, "weight_decay": 0.1}, [-0.0274983, -1.0708162, 0.0255859]),
    ("Adamax", {"lr": 0.1}, [0.7883623, -1.822635, 0.3451263]),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1, "betas": (0.5, 0.6), "maximize": True}, [1.0634921, -1.8466338, 0.6503867]),
    ("NAdam", {"lr": 0.1}, [0.7841926, -1.8814564, 0.3999012]),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "momentum_decay": 0.5}, [0.7691356, -1.7923304, 0.3959012]),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}, [0.7576052, -1.8242198, 0.3868823]),
    ("RAdam", {"lr": 0.1}, [0.9565217, -1.9645485, 0.0356186]),
    ("RAdam", {"lr": 0.1, "betas": (0.5, 0.9), "weight_decay": 0.1}, [0.9271611, -1.9112366, 0.1136646]),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.5, "decoupled_weight_decay": True}, [0.815898, -1.6817221, -0.0019702]),
    ("Rprop", {"lr": 0.1}, [0.78, -1.9, 0.35]),
    ("Rprop", {"lr": 0.1, "etas": (0.25, 2.0), "step_sizes": (0.05, 0.15), "maximize": True}, [1.25, -2.1, 0.65]),
    ("ASGD", {"lr": 0.1}, [0.9599707, -1.9799404, 0.24999]),
    ("ASGD", {"lr": 0.1, "lambd": 0.5, "t0": 1, "alpha": 0.5, "weight_decay": 0.1}, [0.7978547, -1.6509136, 0.1952239]),
    ("Adafactor", {"lr": 0.1}, [0.7145221, -1.8677124, 0.3892066]),
    ("Adafactor", {"lr": 0.5, "weight_decay": 0.1, "d": 1.5, "beta2_decay": -1.0, "eps": (0.001, 0.01)}, [-0.2124871, -1.1178024, -0.1041511]),
]
