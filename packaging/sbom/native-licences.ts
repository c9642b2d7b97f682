/** The licence of a shared library, and who holds the copyright. */
interface NativeLicence {
  /** SPDX ids, all of which apply. Empty for the public domain. */
  ids: readonly string[]
  copyright: string
}

const ICU = 'Copyright (C) 1995-2025 International Business Machines Corporation, Unicode, Inc.'
const OPENSSL = 'Copyright (C) 1998-2025 The OpenSSL Project Authors'
const VEILLARD = 'Copyright (C) 1998-2025 Daniel Veillard'

/**
 * The libraries that come with Postgres for any platform, by their file names. Postgres is a
 * separate program, so these licences need not go with AGPL-3.0-only.
 */
const LICENCES: readonly (readonly [RegExp, NativeLicence])[] = [
  [/^lib(crypto|ssl)\.so\.1\.1$/, { ids: ['OpenSSL'], copyright: OPENSSL }],
  [/^lib(crypto|ssl)\.3\./, { ids: ['Apache-2.0'], copyright: OPENSSL }],
  [/^libicu\w+\.so\.60/, { ids: ['Unicode-DFS-2016', 'ICU'], copyright: ICU }],
  [/^libicu\w+\.77/, { ids: ['Unicode-3.0', 'ICU'], copyright: ICU }],
  [/^libxml2\./, { ids: ['MIT'], copyright: VEILLARD }],
  [/^libxslt\./, { ids: ['X11'], copyright: VEILLARD }],
  [/^libz\./, { ids: ['Zlib'], copyright: 'Copyright (C) 1995-2025 Jean-loup Gailly, Mark Adler' }],
  [/^libzstd\./, { ids: ['BSD-3-Clause'], copyright: 'Copyright (c) Meta Platforms, Inc.' }],
  [/^liblz4\./, { ids: ['BSD-2-Clause'], copyright: 'Copyright (c) 2011-2025 Yann Collet' }],
  [/^liblzma\./, { ids: [], copyright: 'liblzma of XZ Utils, <https://tukaani.org/xz/>' }],
  [
    /^libossp-uuid\./,
    { ids: ['ISC'], copyright: 'Copyright (C) 2004-2008 Ralf S. Engelschall, The OSSP Project' },
  ],
  [/^libuuid\.1\.1/, { ids: ['BSD-3-Clause'], copyright: "Copyright (C) 1996-2025 Theodore Ts'o" }],
  [
    /^lib(com_err|gssapi_krb5|k5crypto|krb5|krb5support)\./,
    {
      ids: ['BSD-2-Clause'],
      copyright: 'Copyright (C) 1985-2025 Massachusetts Institute of Technology',
    },
  ],
  [
    /^libedit\./,
    {
      ids: ['BSD-3-Clause'],
      copyright: 'Copyright (c) 1992, 1993 The Regents of the University of California',
    },
  ],
  [
    /^lib(iconv|intl)\./,
    {
      ids: ['LGPL-2.1-or-later'],
      copyright: 'Copyright (C) 1999-2025 Free Software Foundation, Inc.',
    },
  ],
]

/** Returns the licence of a library such as `libssl.so.1.1`. Throws for an unknown library. */
export function findNativeLicence(file: string): NativeLicence {
  const [, licence] = LICENCES.find(([pattern]) => pattern.test(file)) ?? []
  if (licence) return licence
  throw new Error(
    `The embedded Postgres has the library ${file}, whose licence is not known. Add it to packaging/sbom/native-licences.ts.`,
  )
}
