#pragma once

// Kumi inside a program that MPI has started: kumi/kumi.hpp and kumi::mpi::join(). Link kumi::mpi.

#include "kumi/job/mpi/join.hpp"
#include "kumi/kumi.hpp"
