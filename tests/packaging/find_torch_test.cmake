# libtorch is found by its files: what its own configuration does must not matter. cmake -D SOURCE=... -D WORK=... -P
# find_torch_test.cmake
file(REMOVE_RECURSE "${WORK}")

# A Python package with CUDA, whose configuration ends CMake without a toolkit.
function(make_torch flags)
  foreach(library torch torch_cpu torch_cuda c10)
    file(WRITE "${WORK}/torch/lib/lib${library}.so" "")
  endforeach()
  file(WRITE "${WORK}/torch/include/torch/csrc/api/include/torch/torch.h" "")
  file(WRITE "${WORK}/torch/include/torch/csrc/api/include/torch/version.h" "#include <torch/headeronly/version.h>\n")
  file(WRITE "${WORK}/torch/include/torch/headeronly/version.h"
    "#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 15\n#define TORCH_VERSION_PATCH 1\n"
    "#define TORCH_VERSION \\\n  \"2.15.1\"\n#define TORCH_VERSION_ABI_TAG 4\n")
  file(WRITE "${WORK}/torch/share/cmake/Torch/TorchConfig.cmake"
    "set(TORCH_CXX_FLAGS \"${flags}\")\nmessage(FATAL_ERROR \"I cannot find the CUDA libraries\")\n")
endfunction()

function(expect words)
  file(REMOVE_RECURSE "${WORK}/build")
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}/tests/packaging/find_torch" -B "${WORK}/build" -G Ninja
      "-DMODULES=${SOURCE}/core/cmake" ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(FIND "${output}" "${words}" place)
  if(NOT result EQUAL 0 OR place EQUAL -1)
    message(FATAL_ERROR "expected \"${words}\" and exit 0, got ${result}:\n${output}")
  endif()
endfunction()

make_torch("-D_GLIBCXX_USE_CXX11_ABI=1")
foreach(hint "CMAKE_PREFIX_PATH=${WORK}/torch/share/cmake" "CMAKE_PREFIX_PATH=${WORK}/torch"
    "Torch_DIR=${WORK}/torch/share/cmake/Torch")
  expect("found 2.15.1 with -Wl,--push-state,--no-as-needed;${WORK}/torch/lib/libtorch.so" "-D${hint}")
endforeach()
expect("definitions: definitions-NOTFOUND" "-DCMAKE_PREFIX_PATH=${WORK}/torch")
file(WRITE "${WORK}/torch/include/fmt/format.h" "")
expect("definitions: FMT_HEADER_ONLY=1" "-DCMAKE_PREFIX_PATH=${WORK}/torch")
make_torch("-D_GLIBCXX_USE_CXX11_ABI=0")
expect("libtorch.so is built for the old ABI of the C++ library" "-DCMAKE_PREFIX_PATH=${WORK}/torch")
expect("Could NOT find Torch" -DCMAKE_FIND_ROOT_PATH=${WORK}/build -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY
  -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY)
