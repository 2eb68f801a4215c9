#pragma once

#include <boost/program_options.hpp>
#include <cstdlib>
#include <iostream>
#include <string_view>

namespace muster::bench {

/// Reads what `options` describe, and `--help`, which prints them. @return whether the program goes on:
/// false if help was asked for. @throws boost::program_options::error for what is not described.
inline bool readCommandLine(int argc, char** argv, boost::program_options::options_description& options,
                            boost::program_options::variables_map& given) {
  namespace po = boost::program_options;
  options.add_options()("help", "show this text");
  po::store(po::parse_command_line(argc, argv, options), given);
  po::notify(given);
  if (given.contains("help")) std::cout << options;
  return !given.contains("help");
}

/// Whether the caller wants steps call by call; then it is no failure that none was launched as a graph.
inline bool recordingIsOff() {
  const char* const value = std::getenv("MUSTER_CUDA_GRAPHS");
  return value && std::string_view(value) == "0";
}

}  // namespace muster::bench
