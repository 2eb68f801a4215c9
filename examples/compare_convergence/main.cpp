#include "examples/compare_convergence/compare.h"
#include "examples/support/program.h"

int main(int argc, char** argv) {
  return example::runProgram("compare_convergence", [&] { return convergence::compare(argc, argv); });
}
