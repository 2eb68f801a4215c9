#!/usr/bin/env bash
# Walks the README as a new user does.
#   walk.sh installed PREFIX   the sections after ./run install: its program in a CMake project of its own, then training
#                              by a run file, with what is installed below PREFIX. The program runs if MUSTER_DATA_DIR
#                              has MNIST. Between them, mnist_convnet.cpp is copied out of the tree and built.
set -euo pipefail
source=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)

# The first block of language $1 in the README after the line $2.
block() {
  awk -v language="$1" -v after="$2" '
    index($0, after) == 1 { reached = 1 }
    reached && inside && /^```$/ { exit }
    reached && inside
    reached && $0 == "```" language { inside = 1 }' "$source/README.md"
}

walk_installed() {
  local prefix=$1 project
  project=$(mktemp -d)
  cd "$project"
  block cpp '# muster' >program.cpp
  printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(program LANGUAGES CXX)' \
    'add_executable(program program.cpp)' "$(block cmake '## In your own project')" >CMakeLists.txt
  cmake -B build -G Ninja "-DCMAKE_PREFIX_PATH=$prefix" -DCMAKE_BUILD_TYPE=Release
  cmake --build build
  if [[ -n ${MUSTER_DATA_DIR-} ]]; then
    build/program | tee said
    grep -q accuracy said
    [[ -s convnet.safetensors ]]
  else
    echo "not run: README's program needs MNIST (MUSTER_DATA_DIR)"
  fi
  mkdir copied
  cp "$source"/examples/{mnist_convnet.cpp,options.h} copied
  sed 's/program\.cpp/mnist_convnet.cpp/' CMakeLists.txt >copied/CMakeLists.txt
  cmake -S copied -B copied/build -G Ninja "-DCMAKE_PREFIX_PATH=$prefix" -DCMAKE_BUILD_TYPE=Release
  cmake --build copied/build
  copied/build/program --help >copied/help
  grep -q averaging-frequency copied/help
  block sh '### Train without C++' >train.sh
  grep -q '^muster train' train.sh
  PATH=$prefix/bin:$PATH bash -euxo pipefail train.sh
  [[ -s model.safetensors ]]
  rm -rf "$project"
}

case ${1-} in
  installed) walk_installed "$(realpath -- "${2:?PREFIX is missing}")" ;;
  *)
    sed -n '2,6s/^# \?//p' "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
