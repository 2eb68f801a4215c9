# muster_cuda_architectures(<variable> <capabilities>): what device code is made for. <capabilities> is nvidia-smi's
# list, a line like 9.0 for each GPU; machine code is made for each kind once. Where it is empty or no such list, for
# the GPUs that the program is shipped for: machine code of A100 and H100, and PTX, which the driver compiles for
# whatever comes later.
function(muster_cuda_architectures variable capabilities)
  set(architectures 80-real 90-real 90-virtual)
  if(capabilities MATCHES "^[0-9]+\\.[0-9]+(\n[0-9]+\\.[0-9]+)*$")
    string(REPLACE "." "" architectures "${capabilities}")
    string(REPLACE "\n" "-real;" architectures "${architectures}-real")
    list(REMOVE_DUPLICATES architectures)
  endif()
  set(${variable} "${architectures}" PARENT_SCOPE)
endfunction()
