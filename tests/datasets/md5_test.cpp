#include "muster/datasets/md5.h"

#include <openssl/evp.h>

#include "tests/support/test.h"

namespace muster {
namespace {

std::string sumOf(const std::string& text) {
  return md5(std::vector<std::uint8_t>(text.begin(), text.end()));
}

TEST_CASE("MD5 gives the sums of RFC 1321, and of a long input from any address") {
  for (const auto& [text, sum] :
       {std::pair("", "d41d8cd98f00b204e9800998ecf8427e"),
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"}})
    CHECK(sumOf(text) == sum);
  // Python: hashlib.md5(b'a' * 1000000).
  const std::vector<std::uint8_t> bytes(1000003, 'a');
  CHECK(md5(std::span(bytes).subspan(3)) == "7707d6ae4e027c70eea2a935c2296f21");
}

TEST_CASE("MD5 works on a system that restricts OpenSSL to FIPS 140") {
  REQUIRE(EVP_default_properties_enable_fips(nullptr, 1) == 1);
  const auto sum = sumOf("abc");
  EVP_default_properties_enable_fips(nullptr, 0);
  CHECK(sum == "900150983cd24fb0d6963f7d28e17f72");
}

}  // namespace
}  // namespace muster
