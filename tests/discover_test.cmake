# discover.cmake lists a program that an emulator runs, and its cases run by that emulator; names keep their signs.
# cmake -D OUT=<folder> -P discover_test.cmake
cmake_minimum_required(VERSION 3.25)
file(MAKE_DIRECTORY "${OUT}")
# No program by itself: it has neither the right to run nor a first line that says what runs it.
file(WRITE "${OUT}/listing" [[
test "$*" = "--reporters=xml --list-test-cases" || exit 3
echo '<TestCase name="a[0] &lt; 2, b; c" testsuite="" filename="/there/x_test.cpp" line="1"/>'
]])
execute_process(COMMAND "${CMAKE_COMMAND}" -D "PROGRAM=sh;-e;${OUT}/listing" -D FOLDER=room -D "PROPERTIES=TIMEOUT;7"
    -D "OUT=${OUT}/cases.cmake" -P "${CMAKE_CURRENT_LIST_DIR}/discover.cmake"
  COMMAND_ERROR_IS_FATAL ANY)
file(READ "${OUT}/cases.cmake" cases)
string(CONCAT wanted "add_test([==[room/x_test: a[0] < 2, b; c]==] [==[sh]==] [==[-e]==] [==[${OUT}/listing]==]"
  " [==[--test-case=a[0] < 2\\, b; c]==] [==[--source-file=*/x_test.cpp]==])\n"
  "set_tests_properties([==[room/x_test: a[0] < 2, b; c]==] PROPERTIES [==[TIMEOUT]==] [==[7]==])\n")
if(NOT cases STREQUAL wanted)
  message(FATAL_ERROR "wrote\n${cases}\ninstead of\n${wanted}")
endif()
