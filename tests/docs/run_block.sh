#!/usr/bin/env bash
# run_block.sh BLOCK PROGRAMS: runs a page's shell block in an empty directory, with the example programs of this build.
# There, `./run mnist`, `./run compare` and `./run nodes` train on a few generated digits; other commands of `run` do
# not exist. MUSTER_PAGES_PYTHON names the Python for blocks of that language.
set -euo pipefail
block=$1 programs=$2 source=$3
for program in muster; do
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
  mnist) exec "$programs/muster" train "$source/examples/mnist.json" --data generated --examples 256 --batch 32 --quiet "\$@" ;;
  compare)
    file=$source/examples/compare/small.json
    if [[ \${1:--} != -* ]]; then
      file=\$1
      [[ -e \$file ]] || file=$source/\$1
      shift
    fi
    sed 's/"type": "mnist"/"type": "generated"/' "\$file" >few.json
    exec "$programs/muster" compare few.json "\$@" --set data.trainExamples=128 --set data.testExamples=64 --test-every 64
    ;;
  nodes)
    command -v mpirun >/dev/null || { echo skipped: there is no mpirun; exit 77; }
    exec mpirun -n "\$1" "\$0" mnist "\${@:2}"
    ;;
esac
echo "a page's block called ./run \$command, which tests do not have" >&2
exit 1
END
chmod +x run
if grep -q photographs "$block"; then  # pictures of several sizes in two classes, and a new one
  mkdir -p photographs/cat photographs/dog
  pictures=$source/tests/core/io/pictures
  cp "$pictures"/oriented[1-8].jpg photographs/cat
  cp "$pictures"/{gamma,grey,rgb,rgba,rgb16,palette,interlaced,black_white}.png photographs/dog
  cp "$pictures/rgb.jpg" new.jpg
fi
# mpirun refuses root and more processes than cores; the names differ before and since Open MPI 5.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
  PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_mpi_yield_when_idle=1 \
  OMPI_MCA_btl_vader_single_copy_mechanism=none
# Open MPI's plugins leak some kilobytes, which AddressSanitizer would report.
if grep -qE 'mpirun|run nodes' "$block"; then export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0; fi
export python=${MUSTER_PAGES_PYTHON-python3} PYTHONPATH=$source/examples PYTHONDONTWRITEBYTECODE=1
no_python() {
  echo "skipped: there is no Python with $1 (MUSTER_PAGES_PYTHON names another)"
  exit 77
}
export -f no_python
export PATH=$programs:$PATH MUSTER_CACHE_DIR=$directory/cache OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
export MUSTER_DATA_DIR='' MUSTER_MNIST_URL=http://127.0.0.1:1/
bash -euo pipefail -x "$block"
