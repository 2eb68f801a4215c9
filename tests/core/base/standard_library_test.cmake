# Tests that programs whose standard library differs from the library's are refused in a sentence, and not by the linker.
# cmake -D COMPILER=... -D INCLUDE=FOLDER -D OUT=FOLDER -P standard_library_test.cmake
file(WRITE "${OUT}/program.cpp" "#include \"muster/core/tensor/tensor.h\"\nint main() {}\n")
function(compile flags want)
  separate_arguments(flags)
  execute_process(COMMAND "${COMPILER}" -fsyntax-only -Wfatal-errors "-I${INCLUDE}" ${flags} "${OUT}/program.cpp"
    RESULT_VARIABLE status ERROR_VARIABLE said)
  string(FIND "${said}" "${want}" at)
  if(want AND (status EQUAL 0 OR at EQUAL -1) OR NOT want AND NOT status EQUAL 0)
    message(FATAL_ERROR "with ${flags} the compiler ended with ${status} and said: ${said}")
  endif()
endfunction()
compile("-std=c++20 -D_GLIBCXX_ASSERTIONS" "")
compile("-std=c++17" "muster needs C++20: compile with -std=c++20")
compile("-std=c++20 -D_GLIBCXX_DEBUG" "_GLIBCXX_DEBUG changes std::vector, and muster was built without it")
compile("-std=c++20 -D_GLIBCXX_DEBUG -DMUSTER_BUILT_WITH_GLIBCXX_DEBUG" "")
compile("-std=c++20 -D_GLIBCXX_USE_CXX11_ABI=0" "changes std::string, and muster was built without it")
