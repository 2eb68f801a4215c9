# Whoever installs an optional library later compiles its module alone, and what is compiled together with the few files
# that differ then. cmake -D SOURCE=... -D WORK=... -P optional_test.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${WORK}")

# The commands that compile the sources, as JSON.
function(configure optional commands)
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}" -G Ninja -D CMAKE_BUILD_TYPE=Release
      -D MUSTER_CUDA=OFF -D MUSTER_BUILD_TESTS=OFF -D CMAKE_EXPORT_COMPILE_COMMANDS=ON -D MUSTER_OPTIONAL=${optional}
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE problem)
  if(status)
    message(FATAL_ERROR "configuring failed: ${problem}")
  endif()
  file(READ "${WORK}/compile_commands.json" text)
  set(${commands} "${text}" PARENT_SCOPE)
endfunction()

# The files that list which sources are compiled together.
function(list_units units)
  file(GLOB_RECURSE found "${WORK}/unity_*.cxx")
  set(listed "")
  foreach(unit IN LISTS found)
    file(SHA256 "${unit}" hash)
    list(APPEND listed "${unit} ${hash}")
  endforeach()
  set(${units} "${listed}" PARENT_SCOPE)
endfunction()

configure(OFF before)
list_units(units_before)
list(LENGTH units_before units)
configure(ON after)
list_units(units_after)
list(REMOVE_ITEM units_before ${units_after})
list(LENGTH units_before changed)
string(JSON count LENGTH "${before}")
math(EXPR last "${count} - 1")
set(again "")
foreach(n RANGE ${last})
  string(JSON command GET "${before}" ${n} command)
  string(JSON source GET "${before}" ${n} file)
  string(FIND "${after}" "\"${source}\"" exists)  # a source without the module has one with it instead
  string(REPLACE "\\" "\\\\" command "${command}")
  string(REPLACE "\"" "\\\"" command "${command}")
  string(FIND "${after}" "\"${command}\"" place)
  if(place EQUAL -1 AND NOT exists EQUAL -1)
    list(APPEND again "${source}")
  endif()
endforeach()
if(again OR changed GREATER 6 OR units LESS 50 OR count LESS 100)
  message(FATAL_ERROR "of ${count} compilations these are compiled again: ${again}; and of ${units} groups: ${units_before}")
endif()
