/* The one function of bcryptprimitives.dll that the standard library of Rust asks for. Windows has had it since
   Windows 7, Wine since 9; with this library an older Wine runs what we build. Random bits come from advapi32. */
#include <windows.h>

BOOLEAN WINAPI SystemFunction036(PVOID buffer, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length)
{
    while (length > 0) {
        ULONG some = length > 0x10000000 ? 0x10000000 : (ULONG)length;
        if (!SystemFunction036(data, some))
            return FALSE;
        data += some;
        length -= some;
    }
    return TRUE;
}
