"""LightGBM on several machines by its own sockets: each has its part of the rows, and a list of all."""

import argparse
import os

import lightgbm as lgb
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_boost_round", type=int, default=30)
    parser.add_argument("--learning_rate", type=float, default=0.1)
    parser.add_argument("--num_leaves", type=int, default=31)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--machines", required=True, help="host:port of each machine, with commas between them")
    parser.add_argument("--rank", type=int, required=True, help="of this one in the list")
    parser.add_argument("--period", type=int, default=10)
    parser.add_argument("--checkpoints", default=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    args = parser.parse_args()

    machines = args.machines.split(",")
    features, labels = make_classification(args.rows, 30, n_informative=10, flip_y=0.05, random_state=0)
    train_x, test_x, train_y, test_y = train_test_split(features, labels, test_size=0.3, random_state=0)
    train = lgb.Dataset(train_x[args.rank :: len(machines)], train_y[args.rank :: len(machines)])
    params = {
        "objective": "binary",
        "learning_rate": args.learning_rate,
        "num_leaves": args.num_leaves,
        "tree_learner": "data",
        "machines": args.machines,
        "num_machines": len(machines),
        "local_listen_port": int(machines[args.rank].rpartition(":")[2]),
        "pre_partition": True,
        "verbosity": -1,
    }

    path = os.path.join(args.checkpoints, "model.txt")
    before = lgb.Booster(model_file=path) if os.path.exists(path) else None
    done = before.current_iteration() if before else 0
    if done and not args.rank:
        print(f"resumed after round {done}")

    def report(env: lgb.callback.CallbackEnv) -> None:
        if args.rank or (env.iteration + 1) % args.period:
            return
        os.makedirs(args.checkpoints, exist_ok=True)
        env.model.save_model(path + ".new")
        os.replace(path + ".new", path)
        print(f"round={env.iteration + 1} loss={env.evaluation_result_list[0][2]:.6f}", flush=True)

    lgb.train(
        params,
        train,
        num_boost_round=args.num_boost_round - done,
        valid_sets=[lgb.Dataset(test_x, test_y, reference=train)],
        init_model=before,
        callbacks=[report],
    )


if __name__ == "__main__":
    main()
