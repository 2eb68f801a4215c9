#pragma once

#include <boost/program_options.hpp>
#include <cstdlib>
#include <iostream>
#include <string_view>

namespace muster::bench {

/// Reads the options and `--help` or `-h`, which print them. @return false if it printed the help. @throws
/// boost::program_options::error for an unknown option.
inline bool readCommandLine(int argc, char** argv, boost::program_options::options_description& options,
                            boost::program_options::variables_map& given) {
  namespace po = boost::program_options;
  options.add_options()("help,h", "show this text");
  po::store(po::parse_command_line(argc, argv, options), given);
  po::notify(given);
  if (given.contains("help")) std::cout << options;
  return !given.contains("help");
}

/// Whether the caller disabled graphs; then it is no failure if no step was launched as a graph.
inline bool recordingIsOff() {
  const char* const value = std::getenv("MUSTER_CUDA_GRAPHS");
  return value && std::string_view(value) == "0";
}

}  // namespace muster::bench
