/** The pages before sign-in, bundled as one script. */
export { default as Invitation } from './invite.tsx'
export { default as Reset } from './reset.tsx'
export { default as Setup } from './setup.tsx'
export { default as SignIn } from './sign-in.tsx'
