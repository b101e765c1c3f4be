# Toolchain for the other architecture: KUMI_CROSS is x86_64 or aarch64, KUMI_CROSS_ROOT holds its libraries, as
# scripts/cross.sh unpacks them. libc and libstdc++ come with the compiler.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES KUMI_CROSS KUMI_CROSS_ROOT)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${KUMI_CROSS})
set(CMAKE_C_COMPILER ${KUMI_CROSS}-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER ${KUMI_CROSS}-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${KUMI_CROSS}-linux-gnu)

set(CMAKE_FIND_ROOT_PATH ${KUMI_CROSS_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${KUMI_CROSS_ROOT}/usr/lib/${KUMI_CROSS}-linux-gnu/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${KUMI_CROSS_ROOT})

# The emulator finds libc where the cross compiler has it, and the others in KUMI_CROSS_ROOT.
set(libraries ${KUMI_CROSS_ROOT}/usr/lib/${KUMI_CROSS}-linux-gnu)
set(CMAKE_CXX_FLAGS_INIT "-isystem ${KUMI_CROSS_ROOT}/usr/include/${KUMI_CROSS}-linux-gnu")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath,${libraries} -Wl,-rpath-link,${libraries} -L${libraries}")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${KUMI_CROSS} -L /usr/${KUMI_CROSS}-linux-gnu
    -E LD_LIBRARY_PATH=${libraries}:${KUMI_CROSS_ROOT}/lib/${KUMI_CROSS}-linux-gnu)
