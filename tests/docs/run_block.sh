#!/usr/bin/env bash
# run_block.sh BLOCK PROGRAMS: runs a page's shell block in an empty directory, with the example programs of this build.
# `./run mnist` and `./run compare` are programs there, which train on a few drawn digits; no other command of `run` is.
set -euo pipefail
block=$1 programs=$2
for program in mnist_convnet compare_convergence muster; do
  [[ -x $programs/$program ]] || { echo "skipped: $programs has no $program"; exit 77; }
done
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT
cd "$directory"
cat >run <<END
#!/usr/bin/env bash
set -euo pipefail
command=\$1
shift
case \$command in
  mnist) exec "$programs/mnist_convnet" --data generated --examples 256 --batch 32 --quiet "\$@" ;;
  compare) exec "$programs/compare_convergence" "\$@" ;;
esac
echo "a page's block called ./run \$command, which tests do not have" >&2
exit 1
END
chmod +x run
export PATH=$programs:$PATH MUSTER_CACHE_DIR=$directory/cache OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
export MUSTER_DATA_DIR='' MUSTER_MNIST_URL=http://127.0.0.1:1/
bash -euo pipefail -x "$block"
